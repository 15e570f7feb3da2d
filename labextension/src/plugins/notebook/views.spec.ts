/** Two views of one notebook (*New View for Notebook*), one of which is closed. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { INotebookTracker, NotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IDistExecutions, IDistGroups, IDistNotebooks, IDistStarter } from '../../tokens';
import { rankKernelPlugin } from '../cells/rankkernelplugin';
import { cellOffersPlugin } from './startgroups';

const app = { serviceManager: { contents: { localPath: (path: string) => path } } } as unknown as JupyterFrontEnd;

/** What the views have in common. */
function shared(model: NotebookModel): object {
  const owner = {};
  const kernel = {
    id: 'k',
    info: Promise.resolve({ implementation: 'jupyter_dist' }),
    handleComms: true,
    createComm: vi.fn()
  };
  const signals = ['kernelChanged', 'statusChanged'].map(name => [name, new Signal(owner)]);
  const sessionContext = { session: { kernel }, ...Object.fromEntries(signals) };
  return { path: 'a.ipynb', pathChanged: new Signal(owner), sessionContext, model };
}

function trackerOf(panels: NotebookPanel[]): INotebookTracker {
  return {
    forEach: (call: (panel: NotebookPanel) => void) => panels.forEach(call),
    filter: (test: (panel: NotebookPanel) => boolean) => panels.filter(test),
    find: (test: (panel: NotebookPanel) => boolean) => panels.find(test),
    widgetAdded: new Signal({})
  } as unknown as INotebookTracker;
}

let model: NotebookModel;
let panels: NotebookPanel[];
let widgets: Widget[];

beforeEach(() => {
  // Yjs warns of cells that JupyterLab makes before they are in a document.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  model = new NotebookModel();
  const metadata = { jupyter_dist: { group: 'gone', ranks: 'all' } };
  const cells = [{ id: 'a', cell_type: 'code', source: '', outputs: [], execution_count: null, metadata: {} }];
  model.fromJSON({ nbformat: 4, nbformat_minor: 5, metadata, cells });
  const context = shared(model);
  widgets = [0, 1].map(() => Object.assign(new Widget(), { model: model.cells.get(0) }));
  panels = widgets.map(
    widget =>
      Object.assign(new Widget(), { context, content: { model, widgets: [widget] } }) as unknown as NotebookPanel
  );
});

afterEach(() => void vi.restoreAllMocks());

it('share one comm of the kernel Ranks, until the last is closed', async () => {
  const { kernel } = panels[0].context.sessionContext.session!;
  const comm = { open: vi.fn(), dispose: vi.fn(), onMsg: (): void => undefined };
  const create = vi.mocked(kernel!.createComm).mockReturnValue(comm as never);
  void rankKernelPlugin.activate(app, trackerOf(panels), {} as IDistExecutions);
  await Promise.resolve();
  await Promise.resolve();
  // The kernel forgets an earlier one of the same page.
  expect(create).toHaveBeenCalledTimes(1);
  panels[1].dispose();
  expect(comm.dispose).not.toHaveBeenCalled();
  panels[0].dispose();
  expect(comm.dispose).toHaveBeenCalledTimes(1);
});

it('each offer the group that a cell misses', () => {
  const refused = new Signal<object, object>({});
  const notebooks = { refused, awaitsStart: new Signal({}) } as unknown as IDistNotebooks;
  const starter = {
    changed: new Signal({}),
    isMissing: () => true,
    wantedBy: () => ({ wanted: { num_ranks: 2 }, refused: [] })
  };
  void cellOffersPlugin.activate(
    app,
    starter as unknown as IDistStarter,
    {} as IDistGroups,
    notebooks,
    trackerOf(panels),
    null,
    nullTranslator
  );
  refused.emit({ notebook: model, cellId: 'a', code: 'unknown_group' });
  expect(widgets.map(({ node }) => node.querySelectorAll('.jpd-CellOffer').length)).toEqual([1, 1]);
  panels[0].dispose();
  starter.isMissing = () => false;
  model.setMetadata('jupyter_dist', { group: 'other', ranks: 'all' });
  // The closed one is left as it was.
  expect(widgets.map(({ node }) => node.querySelectorAll('.jpd-CellOffer').length)).toEqual([1, 0]);
});
