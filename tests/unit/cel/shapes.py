"""Trees, types and costs of expressions in forms that tests can compare at a glance."""

from drachma.cel import ast, checker, environment, parser

NEW = environment.Expressions.NEW
DEVICE = environment.device_environment(consumable_capacity=True, list_type_attributes=True, expressions=NEW)
SCALARS = environment.device_environment(consumable_capacity=True, list_type_attributes=False, expressions=NEW)
PLAIN = environment.plain_environment()


def tree(text: str, env: environment.Environment = PLAIN) -> str:
    """The parsed tree: calls as ``f(a, b)``, members as ``a.f(b)``, comprehensions spelled out."""
    return spell(parser.parse(text, env.macros).root)


def check(text: str, env: environment.Environment = DEVICE) -> checker.Checked:
    """The checked form of an expression."""
    return checker.check(parser.parse(text, env.macros), env)


def spell(node: ast.Node) -> str:
    match node:
        case ast.Literal(value=ast.UInt() as value):
            return f"{int(value)}u"
        case ast.Literal(value=None):
            return "null"
        case ast.Literal(value=bool() as value):
            return str(value).lower()
        case ast.Literal(value=value):
            return repr(value)
        case ast.Ident(name=name):
            return name
        case ast.Select(operand=operand, field=field, test_only=test_only):
            return f"has({spell(operand)}.{field})" if test_only else f"{spell(operand)}.{field}"
        case ast.Call(function=function, args=args, target=target):
            inside = f"{function}({', '.join(map(spell, args))})"
            return inside if target is None else f"{spell(target)}.{inside}"
        case ast.ListLiteral(elements=elements, optional=optional):
            return f"[{', '.join(('?' if i in optional else '') + spell(e) for i, e in enumerate(elements))}]"
        case ast.MapLiteral(entries=entries):
            parts = [f"{'?' if e.optional else ''}{spell(e.key)}: {spell(e.value)}" for e in entries]
            return f"{{{', '.join(parts)}}}"
        case ast.MessageLiteral(type_name=name, fields=fields):
            parts = [f"{'?' if e.optional else ''}{e.name}: {spell(e.value)}" for e in fields]
            return f"{name}{{{', '.join(parts)}}}"
        case ast.Comprehension():
            names = node.iter_var if node.iter_var2 is None else f"{node.iter_var}, {node.iter_var2}"
            return (
                f"fold({names} in {spell(node.iter_range)}; {node.accu_var} = {spell(node.accu_init)};"
                f" while {spell(node.loop_condition)}; {spell(node.loop_step)}; {spell(node.result)})"
            )
