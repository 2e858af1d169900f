"""The programs that the workflows' tools call; they run on compute nodes and know nothing of StreamFlow."""
