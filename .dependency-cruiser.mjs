import { readdirSync } from 'node:fs';
import { relative } from 'node:path';

// Which folder of the page may import which, lowest first, as docs/architecture.md draws them; imports of types count.
// A name with an extension is one file; '.' is the other files of the folder, by default above its folders.
const ROOT = 'labextension/src';
const ORDER = {
  '': ['services', 'tokens.ts', 'model', 'widgets', 'plugins', 'parts', 'vscode'],
  services: ['protocol.ts', 'translation.ts', 'words.ts', 'errors.ts', 'ranksets.ts', 'rest', 'channel'],
  model: [
    '.',
    'format',
    'executions',
    'outputs',
    'numbers',
    'groups',
    'targets',
    'state',
    'comms',
    'variables',
    'cells',
    'notebooks'
  ],
  'model/cells': ['output', 'executor'],
  widgets: ['notices', 'base', 'states', 'starting', 'rankoutput', 'state', 'rankpicker', 'variables', 'sidebar'],
  'widgets/rankoutput': ['blocks', 'items', 'found', 'notes', 'header'],
  'widgets/rankpicker': ['layout', 'pickermodel.ts', 'targetwords.ts', 'panel'],
  'widgets/sidebar': ['context.ts', 'charts', 'startform', 'groups'],
  plugins: ['commands', 'state', 'notebook', 'cells', 'panels', 'shell']
};

const TESTS = '\\.(spec|harness)\\.tsx?$';

/** What is at a place of an order. */
function pathOf(folder, name, order) {
  const base = [ROOT, folder].filter(Boolean).join('/');
  if (name === '.') {
    const named = order.filter(other => other.includes('.ts')).map(other => other.replace('.', '\\.'));
    return `^${base}/${named.length > 0 ? `(?!(${named.join('|')})$)` : ''}[^/]+$`;
  }
  return name.includes('.ts') ? `^${base}/${name.replace('.', '\\.')}$` : `^${base}/${name}/`;
}

const layers = Object.entries(ORDER).flatMap(([folder, listed]) => {
  const order = listed.includes('.') ? listed : [...listed, '.'];
  return order.slice(0, -1).map((name, i) => ({
    name: `${[folder, name].filter(Boolean).join('/')}-is-below`,
    comment: `In ${folder || ROOT}, ${name} may import only what stands before it: ${order.join(', ')}.`,
    severity: 'error',
    from: { path: pathOf(folder, name, order), pathNot: TESTS },
    to: { path: order.slice(i + 1).map(above => pathOf(folder, above, order)) }
  }));
});

for (const folder of readdirSync(ROOT, { recursive: true, withFileTypes: true }).filter(at => at.isDirectory())) {
  const parent = relative(ROOT, folder.parentPath);
  if (!/^parts(\/|$)/.test(parent) && !ORDER[parent]?.includes(folder.name)) {
    throw new Error(`.dependency-cruiser.mjs has no place for ${folder.name} in the order of '${parent}'.`);
  }
}

export default {
  forbidden: [
    ...layers,
    {
      name: 'parts-do-not-know-each-other',
      comment: 'A part can be removed: only the core is imported.',
      severity: 'error',
      from: { path: `^${ROOT}/parts/([^/]+)/` },
      to: { path: `^${ROOT}/parts/[^/]+/`, pathNot: `^${ROOT}/parts/$1/` }
    },
    {
      name: 'no-circles',
      comment: 'Files import each other, directly or by others; imports of types count.',
      severity: 'error',
      from: { pathNot: TESTS },
      to: { circular: true }
    },
    {
      name: 'only-services-make-requests',
      comment: 'The rest of the page asks a DistService.',
      severity: 'error',
      from: { pathNot: [`^${ROOT}/services/`, TESTS] },
      to: { path: `^${ROOT}/services/(rest/|channel/channel)` }
    },
    {
      name: 'no-dom-below-widgets',
      comment: 'services and model have no DOM.',
      severity: 'error',
      from: { path: `^${ROOT}/(services|model)/`, pathNot: TESTS },
      to: { path: '^node_modules/(react|@lumino/widgets|@jupyterlab/ui-components)/' }
    }
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' }
  }
};
