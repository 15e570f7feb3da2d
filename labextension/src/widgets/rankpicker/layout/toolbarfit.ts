/**
 * How much of the picker stands in the toolbar. The toolbar moves what it has no room for into its menu, where nobody
 * sees which ranks the next cell goes to: the picker gives way before that.
 */
import type { ReactiveToolbar } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Widget } from '@lumino/widgets';

/** `full`: a toggle per rank; `short`: they are below a button; `button`: all is. */
export type ChoiceForm = 'full' | 'short' | 'button';

/** Up to this many ranks stand in the toolbar, however wide it is. */
export const MAX_INLINE = 16;

/** The toolbar's padding, and the button of its menu. */
const RESERVED = 7 + 32;

/** What the forms need at JupyterLab's own size of small letters; what was seen to be wider counts more. */
function estimate(form: ChoiceForm, size: number): number {
  const toggles = size * 27 + Math.max(0, size - 10) * 7;
  return form === 'full' ? 170 + toggles : form === 'short' ? 240 : 90;
}

/** The widest form that fits. */
export function formFor(
  room: number,
  size: number,
  seen: ReadonlyMap<string, number> = new Map()
): ChoiceForm {
  const forms: ChoiceForm[] = size > MAX_INLINE || size === 0 ? ['short'] : ['full', 'short'];
  return forms.find(form => (seen.get(`${form} ${size}`) ?? estimate(form, size)) <= room) ?? 'button';
}

/** A widget of which the toolbar can have more or less, if it has forms. */
export type Fitting = Widget & { form?: ChoiceForm };

/** Keeps the second part of a picker in a toolbar, behind the first, in the form there is room for. */
export class ToolbarFit implements IDisposable {
  constructor(toolbar: ReactiveToolbar, choice: Fitting, before: string, name: string) {
    this._toolbar = toolbar;
    this._choice = choice;
    this._before = before;
    this._name = name;
    this._resized = new ResizeObserver(() => this._fit());
    this._resized.observe(toolbar.node);
    this._resized.observe(choice.node);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._resized.disconnect();
  }

  /** Show the choice for a group of so many ranks; null: none. */
  show(size: number | null): void {
    this._size = size;
    this._fit();
  }

  private _fit(): void {
    const { _choice: choice, _size: size } = this;
    const room = this._room();
    if (this._isDisposed || (size !== null && room === null)) {
      return;
    }
    if (size === null) {
      this._put(null);
      return;
    }
    if (choice.form && choice.parent === this._toolbar && choice.node.offsetWidth > 0) {
      this._seen.set(`${choice.form} ${this._shown}`, choice.node.offsetWidth);
    }
    this._put(formFor(room!, size, this._seen));
  }

  /** The room behind the first part; null: the toolbar is not on the page. */
  private _room(): number | null {
    const { node } = this._toolbar;
    if (node.clientWidth === 0) {
      return null;
    }
    let room = node.clientWidth - RESERVED;
    for (const child of node.children) {
      if (child === this._choice.node) {
        break;
      }
      this._watch(child);
      room -= (child as HTMLElement).offsetWidth;
      if ((child as HTMLElement).dataset.jpItemName === this._before) {
        break;
      }
    }
    return room;
  }

  /** What stands before the choice may change its width by itself: a select that shows another group's name. */
  private _watch(child: Element): void {
    if (!this._watched.has(child)) {
      this._watched.add(child);
      this._resized.observe(child);
    }
  }

  /** The toolbar measures an item when it is put in: in another form, or for another group, it is put in anew. */
  private _put(form: ChoiceForm | null): void {
    const { _choice: choice, _toolbar: toolbar } = this;
    const key = form && `${form} ${this._size}`;
    if (key === this._key) {
      return;
    }
    this._key = key;
    this._shown = this._size;
    if (choice.parent && choice.parent !== toolbar) {
      // From the toolbar's menu: taken out of there, the toolbar would go on with the old width.
      toolbar.insertAfter(this._before, this._name, choice);
    }
    choice.parent = null;
    if (form && 'form' in choice) {
      choice.form = form;
    }
    if (form && !toolbar.insertAfter(this._before, this._name, choice)) {
      toolbar.addItem(this._name, choice);
    }
  }

  private readonly _before: string;
  private readonly _choice: Fitting;
  private _isDisposed = false;
  private _key: string | null = null;
  private readonly _name: string;
  private readonly _resized: ResizeObserver;
  private readonly _seen = new Map<string, number>();
  private _shown: number | null = null;
  private _size: number | null = null;
  private readonly _toolbar: ReactiveToolbar;
  private readonly _watched = new WeakSet<Element>();
}
