import { Notification } from '@jupyterlab/apputils';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, expect, it, vi } from 'vitest';
import { DistError, loadedAtLast } from '../../services/errors';
import { createHelpLink, ErrorNote, lazily, notifyError } from './errornote';

const ERROR = { code: 'rank_dead', message: 'Rank 1 exited.', hint: 'Replace it.' };
const ENTRY = 'https://jupyter-dist.readthedocs.io/en/latest/troubleshooting.html#rank_dead';

// JupyterLab's manager is one for all files.
beforeEach(() => Notification.dismiss());

it('shows that a part could not be loaded until it is there', async () => {
  let isOffline = true;
  const Part = lazily(async () => {
    if (isOffline) {
      throw new Error('Loading chunk failed');
    }
    return ({ name }: { name: string }) => <p>{name}</p>;
  });
  const node = document.createElement('div');
  const root = createRoot(node);
  vi.spyOn(console, 'error').mockReturnValue();
  root.render(<Part name="the part" />);
  await expect.poll(() => node.textContent).toContain('A part of jupyter_dist could not be loaded.');
  isOffline = false;
  await expect.poll(() => node.innerHTML, { timeout: 5000 }).toBe('<p>the part</p>');
  root.unmount();
});

it('says that a part is loaded while the server does not answer', async () => {
  const Part = lazily(() => new Promise<React.ComponentType<object>>(() => undefined));
  const node = document.createElement('div');
  const root = createRoot(node);
  root.render(<Part />);
  await expect.poll(() => node.textContent).toBe('Loading\u2026');
  root.unmount();
});

it('loads what no click asks for again when the network is back', async () => {
  const failed = vi.fn();
  vi.spyOn(console, 'error').mockReturnValue();
  const load = vi.fn(async () => 'part').mockRejectedValueOnce(new Error('Loading chunk failed'));
  const part = loadedAtLast(load, failed);
  await expect.poll(() => failed.mock.calls.length).toBe(1);
  window.dispatchEvent(new Event('online'));
  expect(await part).toBe('part');
});

it('links an error to the entry of its code', () => {
  const html = renderToStaticMarkup(React.createElement(ErrorNote, { error: ERROR }));
  const note = document.createElement('div');
  note.innerHTML = html;
  expect(note.textContent).toBe('Rank 1 exited.Replace it. Help');
  expect(note.querySelector('a')!.href).toBe(ENTRY);
});

it('draws the same link without React, reachable by keyboard', () => {
  const link = createHelpLink(ERROR);
  document.body.append(link);
  link.focus();
  expect(document.activeElement).toBe(link);
  expect([link.href, link.target, link.rel]).toEqual([ENTRY, '_blank', 'noopener noreferrer']);
  expect(link.getAttribute('aria-label')).toBe('Help for the error rank_dead');
});

it('keeps a forged code in the fragment', () => {
  const { origin, pathname, hash } = new URL(createHelpLink({ ...ERROR, code: '"><a href=//x?#' }).href);
  expect(`${origin}${pathname}`).toBe(ENTRY.split('#')[0]);
  expect(decodeURIComponent(hash)).toBe('#"><a href=//x?#');
});

it('offers the entry in a notification, and none for what is not ours', () => {
  const open = vi.spyOn(window, 'open').mockReturnValue(null);
  notifyError(new DistError(ERROR));
  notifyError(new Error('plain'));
  const [plain, ours] = Notification.manager.notifications;
  expect([plain.message, plain.options.actions ?? []]).toEqual(['plain', []]);
  expect(ours.message).toBe('Rank 1 exited. Replace it.');
  ours.options.actions![0].callback(new MouseEvent('click'));
  expect(open).toHaveBeenCalledWith(ENTRY, '_blank', 'noopener');
});
