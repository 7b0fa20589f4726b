"""The bill of materials: every locked package with its version, hashes and licence."""

from scripts import check_licences, sbom

LOCK = sbom.PROJECT / "requirements" / "runtime.txt"


def test_every_locked_package_is_a_component_with_its_hashes() -> None:
    components = {each["name"]: each for each in sbom.build(LOCK)["components"]}
    pins = {each.name: each for each in check_licences.read_pins([LOCK])}
    assert components.keys() == pins.keys()
    for name, component in components.items():
        assert component["version"] == pins[name].version
        assert component["purl"] == f"pkg:pypi/{name}@{pins[name].version}"
        assert component["hashes"], name
        assert all(len(each["content"]) == 64 for each in component["hashes"])


def test_installed_packages_state_an_allowed_licence() -> None:
    for each in sbom.build(LOCK)["components"]:
        for licence in each.get("licenses", ()):
            assert check_licences.Finding(each["name"], licence["expression"]).is_allowed, each["name"]


def test_the_project_itself_is_the_subject() -> None:
    document = sbom.build(LOCK)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert document["metadata"]["component"]["name"] == "drachma"
