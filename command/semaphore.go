package command

var semaphoreSpecs = []*Spec{}
