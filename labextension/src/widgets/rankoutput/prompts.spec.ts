import { nullTranslator } from '@jupyterlab/translation';
import { PromiseDelegate } from '@lumino/coreutils';
import { expect, it } from 'vitest';
import type { IInputPrompt, IInputRequest } from '../../services/protocol';
import { Prompts } from './prompts';

const asked = (seq: number): IInputPrompt =>
  ({ prompt: 'Continue? ', password: false, ranks: '0', seq }) as unknown as IInputPrompt;

it('answers a question once, and not the next one with what is pressed meanwhile', async () => {
  const sent: IInputRequest[] = [];
  const answers: PromiseDelegate<void>[] = [];
  const answer = (body: IInputRequest): Promise<void> => {
    sent.push(body);
    answers.push(new PromiseDelegate());
    return answers[answers.length - 1].promise;
  };
  const prompts = new Prompts({ trans: nullTranslator.load('jupyter_dist'), answer });
  prompts.update([asked(1)], 'folded');
  const input = prompts.node.querySelector('input')!;
  const press = (): boolean => input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
  input.value = 'yes';
  press();
  prompts.update([asked(2)], 'folded'); // the rank asks the same again, before the page has the answer
  press();
  prompts.node.querySelector('button')!.click();
  expect(sent).toEqual([{ text: 'yes', seq: 1, ranks: '0' }]);

  answers[0].reject(new Error('Rank 0 asks no more.'));
  await expect.poll(() => prompts.node.textContent).toContain('Rank 0 asks no more.');
  press(); // an error leaves the text, to be sent again
  expect(sent[1]).toEqual({ text: 'yes', seq: 2, ranks: '0' });
  answers[1].resolve();
  await expect.poll(() => input.value).toBe('');
});
