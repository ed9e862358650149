package command

var queueSpecs = []*Spec{}
