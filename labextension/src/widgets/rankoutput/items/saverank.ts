/** Copies the output of a rank, and saves it as files. */
import { Clipboard } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import { filesOf, IRankFile, textOf } from '../../../model/outputs/rankfiles';
import { saveBlob } from '../../base/savefile';
import type { IShownItem } from './shown';

export function copyText(items: readonly IShownItem[]): void {
  Clipboard.copyToSystem(textOf(items));
}

/** Save the only file, or let the user choose from a menu below the button. */
export function saveFiles(
  items: readonly IShownItem[],
  rank: number,
  button: HTMLElement,
  trans: TranslationBundle
): void {
  const files = filesOf(items, rank);
  if (files.length <= 1) {
    files.forEach(save);
    return;
  }
  const commands = new CommandRegistry();
  const menu = new Menu({ commands });
  const add = (command: string, label: string, execute: () => void): void => {
    commands.addCommand(command, { label, execute, describedBy: { args: { type: 'object', properties: {} } } });
    menu.addItem({ command });
  };
  add('all', trans._n('%1 file', 'All %1 files', files.length), () => files.forEach(save));
  menu.addItem({ type: 'separator' });
  files.forEach((file, i) => add(`file-${i}`, file.name, () => save(file)));
  const { left, bottom } = button.getBoundingClientRect();
  // Commands run after it has closed.
  menu.aboutToClose.connect(() => {
    button.focus();
    setTimeout(() => menu.dispose(), 0);
  });
  menu.open(left, bottom);
}

function save({ name, type, content, isBase64 }: IRankFile): void {
  const bytes = isBase64
    ? Uint8Array.from(atob(content.replace(/\s/g, '')), character => character.charCodeAt(0))
    : content;
  saveBlob(new Blob([bytes], { type }), name);
}
