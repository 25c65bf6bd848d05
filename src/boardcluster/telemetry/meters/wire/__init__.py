"""What several kinds of meters share: web requests, secrets, options, register arithmetic."""
