"""The site: the pages of docs/ with navigation and search, built by mkdocs without a network.

The pages are written for readers of the repository. `markdown` and `staging` make a copy of them that mkdocs understands, `navigation` says
which page is for which reader, and `__main__` runs mkdocs.
"""
