/** In the tab of a rank: copy its output, or save it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { loaded } from '../../../services/errors';
import { notifyError } from '../../base/errornote';
import type { IShownItem } from '../items/shown';

/** How long a button shows its result. */
const SAID_MS = 2000;

export class RankButtons {
  constructor(private readonly _trans: TranslationBundle) {
    this.node = document.createElement('div');
    this.node.className = 'jpd-Ranks-actions jpd-RankButtons';
    this.node.setAttribute('role', 'group');
    this.node.hidden = true;
    const copy = this._button(_trans.__('Copy'), _trans.__("Copy this rank's output"), async button => {
      const { copyText } = await parts();
      copyText(this._items);
      button.textContent = _trans.__('Copied');
      setTimeout(() => (button.textContent = _trans.__('Copy')), SAID_MS);
    });
    const save = this._button(
      _trans.__('Download'),
      _trans.__("Download this rank's output: text, and figures as files"),
      async button => {
        const { saveFiles } = await parts();
        saveFiles(this._items, this._rank!, button, _trans);
      }
    );
    this.node.append(copy, save);
  }

  readonly node: HTMLElement;

  /** The rank whose tab is shown, with its items; null for other tabs. */
  update(rank: number | null, items: readonly IShownItem[]): void {
    this._items = items;
    if (rank !== this._rank) {
      this._rank = rank;
      this.node.setAttribute('aria-label', rank === null ? '' : this._trans.__('Output of rank %1', rank));
    }
    this.node.hidden = rank === null || items.length === 0;
  }

  private _button(text: string, label: string, act: (button: HTMLElement) => Promise<void>): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Ranks-action';
    button.textContent = text;
    button.title = label;
    button.dataset.lmSuppressShortcuts = 'true';
    button.onclick = () => void act(button).catch(notifyError);
    return button;
  }

  private _items: readonly IShownItem[] = [];
  private _rank: number | null = null;
}

/** Loaded when they are first used. */
function parts(): Promise<typeof import('../items/saverank')> {
  return loaded(import(/* webpackChunkName: "rankfiles" */ '../items/saverank'));
}
