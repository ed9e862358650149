package command

var bloomSpecs = []*Spec{}
