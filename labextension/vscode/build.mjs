// Bundles the renderer with its styles: node labextension/vscode/build.mjs FOLDER
import { build } from 'esbuild';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = argv[2];
const common = { bundle: true, minify: true, logLevel: 'error' };
const styles = await build({ ...common, entryPoints: [join(here, 'style.css')], write: false });
await mkdir(out, { recursive: true });
await build({
  ...common,
  entryPoints: [join(here, '../src/vscode/index.ts')],
  outfile: join(out, 'renderer.js'),
  format: 'esm',
  target: 'es2022',
  // Styles that JavaScript imports are in those above, or of parts of JupyterLab that are not shown here.
  loader: { '.css': 'empty', '.svg': 'text' },
  define: { STYLES: JSON.stringify(styles.outputFiles[0].text) }
});
for (const name of ['package.json', 'README.md', 'LICENSE']) {
  await copyFile(join(here, name === 'LICENSE' ? '../..' : '.', name), join(out, name));
}
