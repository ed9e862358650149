package command

var expiryCmdSpecs = []*Spec{}
