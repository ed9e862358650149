package command

var itemExpirySpecs = []*Spec{}
