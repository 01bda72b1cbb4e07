"""The class of a page, by a vote of all sources.

infoboxes | files of types | first sentences | page typer    voters: `Facts`, a class of a page
    |        (page_features -> page_typer, of trained_classes, learns from the others)
    v
statements     one long table: entity, class, voter; redirects lead to their targets
    |          regions: what calls a region a settlement is put right
    v
answers        all that one voter states about an entity, and the classes that this may mean
    v
reliability    how often each answer is right, by entities that several voters know
    v
votes          the deepest class that more than half of the weight supports
    |          lone: what one doubtful voter states alone needs links that bear it out
    v
building       all of this in order -> `EntityTable`, and how the voters agree
"""
