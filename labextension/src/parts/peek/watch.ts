/** Values that are read while a cell runs, again and again as long as they are visible. */
import type { DistError } from '../../services/errors';
import type { IErrorBody, IGroup, IPeeked } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { ChangingModel } from '../../model/changing';
import { phaseOf } from '../../model/format/states';

/** From an answer to the next question. */
const PAUSE_MS = 2000;
/** From a key to the question: names are typed letter by letter. */
const TYPING_MS = 400;

export class WatchModel extends ChangingModel {
  constructor(
    private readonly _service: Pick<IDistService, 'peekValues'>,
    private readonly _groups: Pick<IDistGroups, 'groups' | 'changed'>,
    private readonly _group: string
  ) {
    super();
    this._groups.changed.connect(this._update, this);
  }

  /** As they were typed; empty: the names of the function that runs. */
  get names(): string {
    return this._names;
  }

  set names(names: string) {
    this._names = names;
    this._later(TYPING_MS);
    this.emitChanged();
  }

  /** Read a name beside the names that are read already. */
  add(name: string): void {
    const known = this._names.split(',').map(each => each.trim());
    this.names = [...new Set([...known, name])].filter(Boolean).join(', ');
  }

  /** The last answer; null where none is shown: no cell runs, and no names are given. */
  get answer(): IPeeked | null {
    return this._answer;
  }

  get error(): IErrorBody | null {
    return this._error;
  }

  setVisible(isVisible: boolean): void {
    this._isVisible = isVisible;
    this._update();
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._groups.changed.disconnect(this._update, this);
    super.dispose();
  }

  /** A cell has begun or ended. */
  private _update(): void {
    const isBusy = phaseOf(this._known) === 'busy';
    if (isBusy !== this._isBusy || !this._isVisible || this._timer === undefined) {
      this._isBusy = isBusy;
      this._later(0);
    }
  }

  private _later(milliseconds: number): void {
    clearTimeout(this._timer);
    this._timer = this._isVisible && !this.isDisposed ? setTimeout(() => void this._ask(), milliseconds) : undefined;
  }

  private async _ask(): Promise<void> {
    const number = (this._number += 1);
    const phase = phaseOf(this._known);
    let answer: IPeeked | null = null;
    let error: IErrorBody | null = null;
    if (phase === 'busy' || (phase === 'idle' && this._names.trim() !== '')) {
      try {
        answer = await this._service.peekValues(this._group, { names: this._names });
      } catch (reason) {
        error = reason as DistError;
      }
    }
    if (number !== this._number || this.isDisposed) {
      return;
    }
    [this._answer, this._error] = [answer, error];
    if (phase === 'busy') {
      this._later(PAUSE_MS);
    }
    this.emitChanged();
  }

  private get _known(): IGroup | null {
    return this._groups.groups.find(({ id }) => id === this._group) ?? null;
  }

  private _names = '';
  private _answer: IPeeked | null = null;
  private _error: IErrorBody | null = null;
  private _isBusy = false;
  private _isVisible = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  /** Of the last question: an earlier answer that comes later is dropped. */
  private _number = 0;
}
