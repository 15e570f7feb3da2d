/** Shows on a cell that it goes somewhere else than its notebook. */
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { getCellTarget, METADATA_KEY } from '../../model/notebooks/target';
import { rankSetLabel } from '../rankoutput/itemrow';

/** The badges of one notebook. */
export class CellBadges implements IDisposable {
  constructor(panel: NotebookPanel, trans: TranslationBundle) {
    this._panel = panel;
    this._trans = trans;
    panel.content.modelContentChanged.connect(this._follow, this);
    void panel.revealed.then(() => this._follow());
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Cells come and go; each is followed once. */
  private _follow(): void {
    if (this._isDisposed) {
      return;
    }
    for (const cell of this._panel.content.widgets) {
      if (cell.model?.type === 'code' && !this._badges.has(cell)) {
        this._badges.set(cell, null);
        cell.model.metadataChanged.connect((_, { key }) => {
          if (key === METADATA_KEY) {
            this._update(cell);
          }
        }, this);
        this._update(cell);
      }
    }
  }

  private _update(cell: Cell): void {
    const own = getCellTarget(cell.model);
    let badge = this._badges.get(cell) ?? null;
    if (!own) {
      badge?.remove();
      this._badges.set(cell, null);
      return;
    }
    if (!badge) {
      badge = document.createElement('div');
      badge.className = 'jpd-CellBadge';
      badge.setAttribute('role', 'note');
      cell.node.append(badge);
      this._badges.set(cell, badge);
    }
    const { _trans: trans } = this;
    const name =
      'target' in own
        ? trans.__('kernel')
        : own.ranks === 'all'
          ? trans.__('all ranks')
          : rankSetLabel(trans, own.ranks);
    badge.textContent = name;
    badge.title =
      'group' in own && own.group
        ? trans.__('This cell runs on: %1 of %2', name, own.group)
        : trans.__('This cell runs on: %1', name);
    badge.setAttribute('aria-label', badge.title);
  }

  private _badges = new WeakMap<Cell, HTMLElement | null>();
  private _isDisposed = false;
  private _panel: NotebookPanel;
  private _trans: TranslationBundle;
}
