import { nullTranslator } from '@jupyterlab/translation';
import React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { expect, it } from 'vitest';
import { SampleColumns } from './model/columns';
import type { TimelineModel } from './model/timeline';
import { Readout } from './readout';

it('announces what is at a place when the user goes there, and not the time that passes', () => {
  const trans = nullTranslator.load('jupyter_dist');
  let now = 110;
  const execution = { id: 'e', execution_count: 7, notebook: 'train.ipynb', line: '' };
  const model = {
    isLoaded: true,
    now: () => now,
    columns: new SampleColumns(),
    bands: () => [{ execution, begin: 100, end: null, state: 'running' }],
    sights: { waits: () => [] },
    steps: { near: () => null }
  } as unknown as TimelineModel;
  const scales = { memory: 1e9, line: 100 };
  const host = document.createElement('div');
  const root = createRoot(host);
  let at = { rank: 3, at: 105 };
  const draw = (): string[] => {
    flushSync(() => root.render(<Readout {...{ model, line: 'cpu', place: at, scales, trans }} />));
    return ['.jpd-Timeline-readout', '[role=status]'].map(part => host.querySelector(part)!.textContent!);
  };
  const [first] = draw();
  expect(draw()).toEqual([first, first]);
  expect(first).toContain('running 10 s');
  now = 111;
  const [later, said] = draw();
  expect(later).toContain('running 11 s');
  expect(said).toBe(first);
  at = { rank: 2, at: 105 };
  expect(draw()[1]).toMatch(/^rank 2, .*running 11 s/);
  root.unmount();
});
