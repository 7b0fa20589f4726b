"""Shuffle sharding: deals each flow a small hand of queues, so that two flows rarely share all of their queues."""

import hashlib

_HASH_BYTES = 8


def hash_flow(schema: str, flow: str) -> int:
    """Return a number of 64 bits that is spread evenly over flows."""
    digest = hashlib.blake2b(f"{len(schema)},{schema}{flow}".encode(errors="surrogatepass"), digest_size=_HASH_BYTES)
    return int.from_bytes(digest.digest(), "little")


def deal(number: int, *, queues: int, hand: int) -> list[int]:
    """Return ``hand`` different queues below ``queues``, each hand as likely as any other."""
    sorted_cards: list[int] = []
    dealt: list[int] = []
    for position in range(hand):
        number, card = divmod(number, queues - position)
        for lower in sorted_cards:
            if card < lower:
                break
            card += 1
        dealt.append(card)
        sorted_cards.append(card)
        sorted_cards.sort()
    return dealt
