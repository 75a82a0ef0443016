"""What a duck does not measure but can work out: the trunk's velocity and the way it has gone."""
