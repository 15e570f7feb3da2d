import { MimeModel, type IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Clock } from '../../model/format/clock';
import { plainOutputs } from '../../model/outputs/liveoutputs';
import { IExecution, RANKS_MIME } from '../../services/protocol';
import type { IRanksRendererOptions } from './options';
import { RanksRenderer } from './renderer';

const STARTED = 1000;
const RUNNING = {
  id: 'e-0123456789ab',
  group: 'g-0123abcd',
  ranks: '0-1',
  state: 'running',
  statuses: [],
  started_at: STARTED,
  ended_at: null,
  error: null
} as unknown as IExecution;
const BUNDLE = {
  version: 1,
  group: { id: RUNNING.group, name: 'train', world_size: 2 },
  execution_id: RUNNING.id,
  ranks: '0-1',
  state: 'running',
  statuses: [],
  items: []
};

let renderer: RanksRenderer;
let followed: { execution: IExecution; changed: Signal<object, object> };

/** The output of a running cell, on the page. */
beforeEach(async () => {
  vi.useFakeTimers();
  const began = Date.now();
  const changed = new Signal<object, void>({});
  followed = { id: RUNNING.id, execution: RUNNING, items: [], changed: new Signal({}) } as never;
  const options = {
    trans: nullTranslator.load('jupyter_dist'),
    groups: { clock: new Clock(() => STARTED + (Date.now() - began) / 1000), changed, find: () => null },
    executions: { followed: changed, find: () => followed },
    live: plainOutputs({} as IRenderMimeRegistry),
    actions: { items: [], changed },
    headerNotes: { items: [], changed },
    outputTabs: { items: [], changed },
    hasServer: true,
    isConnected: () => true,
    groupOf: () => undefined,
    condenses: () => false,
    showsHeaders: () => false,
    stopOf: () => null,
    notesOf: () => []
  } as unknown as IRanksRendererOptions;
  renderer = new RanksRenderer(options);
  Widget.attach(renderer, document.body);
  await renderer.renderModel(new MimeModel({ data: { [RANKS_MIME]: BUNDLE }, trusted: true }));
  await vi.advanceTimersByTimeAsync(2100);
});

afterEach(() => {
  renderer.dispose();
  vi.useRealTimers();
});

const summary = (): string => renderer.node.querySelector('.jpd-Ranks-summary')!.textContent!;

/** What screen readers announce. */
const spoken = (): string[] =>
  [...renderer.node.querySelectorAll('[role=status]')].map(node => node.textContent!).filter(text => text !== '');

it('the running time of a cell that was scrolled out of the page and back keeps running', async () => {
  expect(summary()).toBe('train \u00b7 2 ranks \u00b7 running \u00b7 2.0 s');
  Widget.detach(renderer); // as a notebook does that has only the cells in view on the page
  await vi.advanceTimersByTimeAsync(10000);
  Widget.attach(renderer, document.body);
  await vi.advanceTimersByTimeAsync(1100);
  expect(summary()).toContain('13 s');
  await vi.advanceTimersByTimeAsync(20000);
  expect(summary()).toContain('33 s');
});

it('screen readers announce a cell that begins and ends, and not the time that passes', async () => {
  const said = spoken();
  expect(said).toEqual(['train \u00b7 2 ranks \u00b7 running']);
  let count = 0;
  const observer = new MutationObserver(changes => (count += changes.length));
  renderer.node
    .querySelectorAll('[role=status]')
    .forEach(node => observer.observe(node, { childList: true, characterData: true, subtree: true }));
  await vi.advanceTimersByTimeAsync(5000);
  expect(summary()).toContain('7.1 s');
  expect([spoken(), count]).toEqual([said, 0]);
  observer.disconnect();
  const statuses = [{ ranks: '0-1', status: 'ok' as const, seconds: 7.5 }];
  followed.execution = { ...RUNNING, state: 'ok', statuses, ended_at: STARTED + 7.5 };
  followed.changed.emit({});
  await vi.advanceTimersByTimeAsync(1000);
  expect(spoken()).toEqual(['train \u00b7 2 ranks \u00b7 ok \u00b7 7.5 s']);
});
