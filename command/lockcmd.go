package command

var lockSpecs = []*Spec{}
