import { PageConfig } from '@jupyterlab/coreutils';
import { nullTranslator } from '@jupyterlab/translation';
import { beforeEach, expect, test, vi } from 'vitest';
import { pathOnServer } from '../../model/format/serverfiles';
import type { IExecution, IPace, IRanksBundle, ISlowCause, IVerdicts } from '../../services/protocol';
import type { IShownCell } from '../../tokens';
import { Slowness } from './slowness';

const trans = nullTranslator.load('jupyter_dist');
const place = { file: '<ipython-input-7-0>', name: 'cell [7]', line: 12, code: 'tokens = tokenise(batch)' };
const cause: ISlowCause = {
  kind: 'straggler',
  ranks: '1',
  share: 0.3,
  message: 'Rank 1 is last to the collectives, at line 12 of cell [7]: tokens = tokenise(batch).',
  evidence: ['It came last to 158 of 191 collectives.'],
  advice: 'Give it less to do.',
  place,
  since: 1
};
const pace: IPace = {
  execution_id: 'e',
  seconds: 20,
  causes: [cause],
  ranks: [
    { rank: 0, compute: 0.4, communicate: 0, wait: 0.6, input: 0, waits_for: 1 },
    { rank: 1, compute: 1, communicate: 0, wait: 0, input: 0, waits_for: null }
  ],
  lines: [],
  steps: { seconds: 0.061, collectives: 1, trend: [0.06, 0.061], times: [1, 2] },
  unknown: []
};
const running = { id: 'e', state: 'running', notebook: 'train.ipynb', cell_id: 'c', slowness: [cause] };
const ended = { ...running, state: 'ok', slowness: undefined };
const bundle = { execution_id: 'e', group: { id: 'g', name: 'train' }, state: 'running' } as IRanksBundle;
const verdicts = (outcome: string): IVerdicts =>
  ({
    verdicts: [
      { execution_id: 'e', kind: 'straggler', message: 'Rank 1 is idle.', outcome, witnesses: ['rank 0 waits'] }
    ]
  }) as IVerdicts;

function create(answer = verdicts('not_refuted')) {
  const options = {
    trans,
    pace: vi.fn(async () => pace),
    verdicts: vi.fn(async () => answer),
    openLine: vi.fn(),
    redraw: vi.fn()
  };
  const slowness = new Slowness(options);
  const find = (selector: string): HTMLElement => slowness.node.querySelector(selector)!;
  const update = (execution: object | null, more: Partial<IShownCell> = {}): void =>
    slowness.update({
      bundle,
      execution: execution as IExecution | null,
      isTrusted: true,
      isStale: false,
      isHung: false,
      unchecked: null,
      now: 20,
      ...more
    });
  return { slowness, options, find, update };
}

beforeEach(() => window.sessionStorage.clear());

test('the line is there while its cause holds, with a link to the line of code', () => {
  const { find, update, options } = create();
  update(running);
  expect(find('.jpd-NoteLine').hidden).toBe(false);
  expect(find('.jpd-NoteLine-text').textContent).toBe(cause.message);
  find('.jpd-NoteLine-link').click();
  expect(options.openLine).toHaveBeenCalledWith('g', 'e', place);
  update({ ...running, slowness: [] });
  expect(find('.jpd-NoteLine').hidden).toBe(true);
});

test('it is not shown beside why a cell does not end, or when the state may be out of date', () => {
  const { find, update } = create();
  for (const more of [{ isHung: true }, { isStale: true }]) {
    update(running);
    update(running, more);
    expect(find('.jpd-NoteLine').hidden).toBe(true);
  }
});

test('a line of a file is a link where JupyterLab can open the file', () => {
  const inFile = (file: string): ISlowCause => ({
    ...cause,
    message: 'Rank 1 is last to the collectives, at line 3 of data.py: load().',
    place: { file, name: 'data.py', line: 3, code: 'load()' }
  });
  const { find, update, options } = create();
  const show = (file: string): void => update({ ...running, slowness: [inFile(file)] });
  show('/home/me/code/src/data.py');
  expect(find('.jpd-NoteLine-link').hidden).toBe(true); // it is not known which folder JupyterLab shows
  PageConfig.setOption('rootUri', 'file:///home/me/my%20work');
  show('/home/me/my work/src/data.py');
  expect(find('.jpd-NoteLine-link').textContent).toBe('line 3 of data.py');
  find('.jpd-NoteLine-link').click();
  expect(options.openLine).toHaveBeenCalledWith('g', 'e', expect.objectContaining({ name: 'data.py', line: 3 }));
  expect(pathOnServer('/home/me/my work/src/data.py')).toBe('src/data.py');
  show('/home/me/my workshop/data.py');
  expect(find('.jpd-NoteLine-link').hidden).toBe(true);
  PageConfig.setOption('rootUri', '');
});

test('a running cell without a cause offers the details, once there are some', () => {
  const { slowness, update } = create();
  const calm = { ...running, slowness: [], started_at: 10 };
  update(calm, { now: 13 });
  expect(slowness.button.hidden).toBe(true);
  update(calm, { now: 14 });
  expect(slowness.button.hidden).toBe(false);
  expect(slowness.hint).toBe('');
  update({ ...calm, slowness: [cause] }, { now: 15 }); // the line has its own button
  expect(slowness.button.hidden).toBe(true);
  update(calm, { now: 16, isStale: true });
  expect(slowness.button.hidden).toBe(true);
});

test('folded in one cell, and not in another', () => {
  const { find, update } = create();
  update(running);
  find('.jpd-NoteLine-fold').click();
  expect(find('.jpd-NoteLine-text').hidden).toBe(true);
  update({ ...running, cell_id: 'other' });
  expect(find('.jpd-NoteLine-text').hidden).toBe(false);
  update(running);
  expect(find('.jpd-NoteLine-fold').getAttribute('aria-expanded')).toBe('false');
  find('.jpd-NoteLine-fold').click();
});

test('the tooltip of an ended cell has where its time went', () => {
  const { slowness, update } = create();
  update(running);
  expect(slowness.hint).toBe('');
  update({ ...ended, pace });
  expect(slowness.hint.split('\n')).toEqual([
    cause.message,
    'Where its time went, on average of the ranks: compute 70 %, wait 30 % (most of it for rank 1).',
    'A step took 61 ms.'
  ]);
});

test('a cell from an earlier time is asked for once, if it ran long enough and is trusted', async () => {
  const { slowness, options, update } = create();
  const header = document.createElement('div');
  slowness.watch(header);
  const enter = (): boolean => header.dispatchEvent(new Event('pointerenter'));
  const past = { ...bundle, state: 'ok' as const, started_at: 10, ended_at: 30 };
  update(null, { bundle: { ...past, ended_at: 12 } });
  enter();
  update(null, { bundle: past, isTrusted: false });
  enter();
  expect(options.pace).not.toHaveBeenCalled();
  update(null, { bundle: past });
  enter();
  enter();
  await expect.poll(() => slowness.button.hidden).toBe(false);
  expect(options.pace).toHaveBeenCalledTimes(1);
});

// Made up: a real verdict that is wrong would be a fault to be mended.
test('a refuted cause is named, with what was shown', async () => {
  const { find, update } = create(verdicts('refuted'));
  update(running);
  update(ended);
  await expect.poll(() => find('.jpd-Refuted').hidden).toBe(false);
  expect(find('.jpd-Refuted').textContent).toContain('it may have been wrong');
});
