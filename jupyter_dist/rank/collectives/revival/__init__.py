"""Process groups that are re-created under the same objects, and the models that use them."""
