package stream

// Copy is the delivery as it was when it was received.
func Copy[T any](d *Delivery[T]) *Delivery[T] {
	return &Delivery[T]{Entry: d.Entry, Deliveries: d.Deliveries, g: d.g, consumer: d.consumer}
}
