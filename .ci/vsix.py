"""Build the renderer for VS Code: .ci/vsix.py [FOLDER] leaves jupyter-dist-VERSION.vsix there."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension=".json" ContentType="application/json"/><Default Extension=".vsixmanifest" ContentType="text/xml"/>
<Default Extension=".js" ContentType="application/javascript"/><Default Extension=".md" ContentType="text/markdown"/>
</Types>
"""
MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id="{name}" Version="{version}" Publisher="{publisher}"/>
<DisplayName>{displayName}</DisplayName><Description xml:space="preserve">{description}</Description>
<Categories>Notebooks</Categories>
<Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value="{engine}"/>
<Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="{kinds}"/></Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/></Assets>
</PackageManifest>
"""


def build(folder: Path) -> Path:
    """Return the file that `code --install-extension` takes; its version is that of the npm package."""
    version = json.loads((REPOSITORY / "package.json").read_text())["version"]
    with tempfile.TemporaryDirectory() as made:
        script = REPOSITORY / "labextension" / "vscode" / "build.mjs"
        subprocess.run(["node", str(script), made], cwd=REPOSITORY, check=True)
        package = {**json.loads(Path(made, "package.json").read_text()), "version": version}
        Path(made, "package.json").write_text(json.dumps(package, indent=2))
        fields = {**package, "engine": package["engines"]["vscode"], "kinds": ",".join(package["extensionKind"])}
        path = folder / f"jupyter-dist-{version}.vsix"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("[Content_Types].xml", TYPES)
            archive.writestr("extension.vsixmanifest", MANIFEST.format(**fields))
            for file in sorted(Path(made).iterdir()):
                archive.write(file, f"extension/{file.name}")
    return path


if __name__ == "__main__":
    print(build(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
