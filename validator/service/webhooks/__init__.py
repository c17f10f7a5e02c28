"""What GitHub tells: deliveries are authenticated, understood and stored before they are acknowledged."""
