import { Sanitizer } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { expect, it, vi } from 'vitest';
import type { ITopicHandler } from '../../services/channel/topics';
import type { ILogRecord } from '../../services/protocol';
import { IRankLogOptions, RankLog } from './ranklog';

it('announces that lines are not shown, and not how many each time', async () => {
  vi.useFakeTimers();
  let handler: ITopicHandler;
  const page = { records: [], first: 1, seq: 0, more: false };
  const service = {
    logs: async () => page,
    subscribe: (_: unknown, follower: ITopicHandler) => {
      handler = follower;
      return { dispose: () => undefined };
    }
  };
  const limits = { lines: 10, characters: 100000 };
  const trans = nullTranslator.load('jupyter_dist');
  const options = {
    service,
    executions: { isOwn: () => true },
    group: 'g',
    rank: 0,
    limits,
    rendermime: { sanitizer: new Sanitizer() },
    trans
  };
  const log = new RankLog(options as unknown as IRankLogOptions);
  Widget.attach(log, document.body);
  const announced = (): string[] => [...log.node.querySelectorAll('[role=status]')].map(node => node.textContent!);
  const shown = (name: string): string => log.node.querySelector(`.jpd-RankLog-${name} span`)!.textContent!;
  let seq = 0;
  const write = async (): Promise<void> => {
    const record = (): ILogRecord => ({
      seq: ++seq,
      at: seq,
      rank: 0,
      execution_id: `e-${seq}`,
      execution_count: seq,
      kind: 'stream',
      name: 'stdout',
      text: 'a\nb\n'
    });
    const records = Array.from({ length: 10 }, record);
    handler.receive({ type: 'log', group: 'g', rank: 0, records, seq, skipped: 0 });
    await vi.advanceTimersByTimeAsync(1000);
  };
  await vi.advanceTimersByTimeAsync(1000);
  expect(announced()).toEqual(['This rank has no output yet.', '']);
  await write();
  const before = shown('above');
  expect(before).toMatch(/^\d+ older lines are not shown\.$/);
  expect(announced()).toEqual(['Older lines are not shown.', '']);
  await write();
  expect(shown('above')).not.toBe(before);
  expect(announced()).toEqual(['Older lines are not shown.', '']);

  log.log.keepsTop = true; // the user looks up
  await write();
  await write();
  expect(shown('below')).toMatch(/\(\d+ newer outputs below\)/);
  expect(announced()).toEqual(['Older lines are not shown.', 'You are viewing older output.']);
  log.dispose();
  vi.useRealTimers();
});
