package command

var listItemSpecs = []*Spec{}
