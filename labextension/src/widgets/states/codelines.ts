/** Lines of code in sentences, to which the page can go. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { pathOnServer } from '../../model/format/serverfiles';
import type { ICodeLine } from '../../services/protocol';

const CELL = /^cell \[(\d+)\]$/;

/** A sentence in three parts: its link to a line of code is in the middle. */
export function linkedPlace(
  trans: TranslationBundle,
  sentence: string,
  place: ICodeLine | null
): [string, string, string] {
  const known = place && canOpen(place) ? [place.name, nameOf(trans, place)] : [];
  const links = known.flatMap(one => [trans.__('line %1 of %2', place!.line, one), `line ${place!.line} of ${one}`]);
  const words = links.find(link => sentence.includes(link)) ?? '';
  const at = words ? sentence.indexOf(words) : -1;
  return at < 0 ? [sentence, '', ''] : [sentence.slice(0, at), words, sentence.slice(at + words.length)];
}

/** Where a line is, in short: `cell [3]:12`, `model.py:40`. */
export function placeLabel(trans: TranslationBundle, place: ICodeLine): string {
  return `${nameOf(trans, place)}:${place.line}`;
}

/** The name of a cell in the page's language; of a file as it is. */
function nameOf(trans: TranslationBundle, { name }: ICodeLine): string {
  const cell = CELL.exec(name);
  return cell ? trans.__('cell [%1]', cell[1]) : name === 'the cell' ? trans.__('the cell') : name;
}

/** Whether the page can go to a line: it is in a cell, or in a file that JupyterLab can open. */
export function canOpen(place: ICodeLine): boolean {
  return isInCell(place) || pathOf(place) !== null;
}

/** The path of the file of a line for JupyterLab; null if it is in a cell, or JupyterLab cannot open it. */
export function pathOf(place: ICodeLine): string | null {
  return isInCell(place) ? null : pathOnServer(place.file);
}

function isInCell({ name }: ICodeLine): boolean {
  return name === 'the cell' || CELL.test(name);
}
