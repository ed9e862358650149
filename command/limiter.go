package command

var limiterSpecs = []*Spec{}
