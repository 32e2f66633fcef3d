"""Workflows of many model calls: their definition, and the engines that run them."""
