"""Rules for the TLS options of a configuration."""

from collections.abc import Iterator, Sequence
from typing import Final

from drachma.queueing.configuration.configuration import TLSOptions
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import quotation

_VERSIONS: Final = frozenset({"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"})
_OLD_VERSIONS: Final = frozenset({"VersionTLS10", "VersionTLS11"})
_SECURE: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
_INSECURE: Final = frozenset({
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA", "TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_RC4_128_SHA",
})  # fmt: skip
"""Cipher suites that are accepted and not recommended in messages."""

_CURVES: Final = frozenset({23, 24, 25, 29, 4587, 4588, 4589})
"""Curves that Go 1.26 has names for: P-256, P-384, P-521, X25519, and these with ML-KEM."""


def check(options: TLSOptions | None, at: Path) -> Errors:
    """Check TLS options, if there are any."""
    if options is None:
        return
    problems = tuple(_problems(options))
    if problems:
        yield fielderror.invalid(at, options, "\n".join(problems))
    elif options.min_version == "VersionTLS13" and options.cipher_suites:
        detail = "may not be specified when `minVersion` is 'VersionTLS13'"
        yield fielderror.invalid(at.child("cipherSuites"), options.cipher_suites, detail)


def _problems(options: TLSOptions) -> Iterator[str]:
    advice = "Please use VersionTLS12 or VersionTLS13"
    if options.min_version in _OLD_VERSIONS:
        yield f"invalid minVersion. {advice}"
    elif options.min_version and options.min_version not in _VERSIONS:
        yield f"invalid minVersion: unknown tls version {quotation.quote(options.min_version)}. {advice}"
    for suite in options.cipher_suites:
        if suite not in _SECURE and suite not in _INSECURE:
            yield (
                f"invalid cipher suites: Cipher suite {suite} not supported or doesn't exist. "
                f"Please use the secure cipher names: [{' '.join(_SECURE)}]"
            )
            break
    for position, curve in enumerate(options.curve_preferences):
        problem = _problem_of_curve(curve, options.curve_preferences[:position])
        if problem:
            yield f"invalid curve preferences: {problem}"
            break


def _problem_of_curve(curve: int, earlier_curves: Sequence[int]) -> str:
    if not 1 <= curve <= 65535:
        return f"curve preference {curve} is out of range (must be 1-65535)"
    if curve in earlier_curves:
        return f"duplicate curve preference {curve}"
    if curve not in _CURVES:
        return f"curve preference {curve} is not supported by the current Go version"
    return ""
