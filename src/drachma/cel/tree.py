"""Walks over syntax trees that cost no Python frames, however deep the tree is.

Used by macros (to copy a target), by the checker (to put resolved names in place) and by the literal checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from drachma.cel import ast


def children(node: ast.Node) -> tuple[ast.Node, ...]:
    """Return the nodes directly below, target before arguments, in the order of the text."""
    match node:
        case ast.Literal() | ast.Ident():
            return ()
        case ast.Select(operand=operand):
            return (operand,)
        case ast.Call(target=target, args=args):
            return args if target is None else (target, *args)
        case ast.ListLiteral(elements=elements):
            return elements
        case ast.MapLiteral(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case ast.MessageLiteral(fields=fields):
            return tuple(field.value for field in fields)
        case ast.Comprehension():
            return (
                node.iter_range,
                node.accu_init,
                node.loop_condition,
                node.loop_step,
                node.result,
            )


def descendants(root: ast.Node) -> Iterator[ast.Node]:
    """Yield every node of the tree, a node before those below it."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def rebuild(root: ast.Node, make: Callable[[ast.Node, tuple[ast.Node, ...]], ast.Node]) -> ast.Node:
    """Return the tree with every node replaced by ``make(node, its rebuilt children)``, from the leaves up."""
    todo: list[tuple[ast.Node, tuple[ast.Node, ...] | None]] = [(root, None)]
    done: list[ast.Node] = []
    while todo:
        node, below = todo.pop()
        if below is None:
            below = children(node)
            if below:
                todo.append((node, below))
                todo.extend((child, None) for child in reversed(below))
                continue
        count = len(below)
        rebuilt = tuple(done[len(done) - count :])
        del done[len(done) - count :]
        done.append(make(node, rebuilt))
    return done[0]


def with_children(node: ast.Node, below: tuple[ast.Node, ...], number: Callable[[int], int] | None = None) -> ast.Node:
    """Return the node with other children; ``number`` maps old ids of it and its entries to new ones."""

    def numbered(id_: int) -> int:
        return id_ if number is None else number(id_)

    match node:
        case ast.Literal():
            return ast.Literal(numbered(node.id), node.value)
        case ast.Ident():
            return ast.Ident(numbered(node.id), node.name)
        case ast.Select():
            return ast.Select(numbered(node.id), below[0], node.field, node.test_only)
        case ast.Call(target=None):
            return ast.Call(numbered(node.id), node.function, below)
        case ast.Call():
            return ast.Call(numbered(node.id), node.function, below[1:], below[0])
        case ast.ListLiteral():
            return ast.ListLiteral(numbered(node.id), below, node.optional)
        case ast.MapLiteral():
            pairs = zip(node.entries, below[::2], below[1::2], strict=True)
            entries = [ast.MapEntry(numbered(entry.id), k, v, entry.optional) for entry, k, v in pairs]
            return ast.MapLiteral(numbered(node.id), tuple(entries))
        case ast.MessageLiteral():
            parts = zip(node.fields, below, strict=True)
            fields = [ast.MessageField(numbered(field.id), field.name, v, field.optional) for field, v in parts]
            return ast.MessageLiteral(numbered(node.id), node.type_name, tuple(fields))
        case ast.Comprehension():
            return ast.Comprehension(
                numbered(node.id),
                iter_range=below[0],
                iter_var=node.iter_var,
                accu_var=node.accu_var,
                accu_init=below[1],
                loop_condition=below[2],
                loop_step=below[3],
                result=below[4],
                iter_var2=node.iter_var2,
            )
