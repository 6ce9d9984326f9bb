"""The site: the pages of docs/ with navigation and search, built by mkdocs without a network.

The pages are written for readers of the repository. `markdown` and `staging` create a copy of them in the form that mkdocs reads,
`navigation` assigns pages to readers, and `__main__` runs mkdocs.
"""
