/**
 * The page's notifications about groups. Of each group at most one is shown: the newest whose reason still holds. When
 * that has ended, the one before it is shown again, if it still holds.
 */
import { Notification } from '@jupyterlab/apputils';
import type { IGroup } from '../../services/protocol';
import { withWhole } from './whole';

/** JupyterLab loses changes of a notification that was just opened, and would keep it for ever. */
const SETTLE_MS = 500;

export interface INoticeOptions {
  /** After how many milliseconds it closes; false: when it is ended, when the group has a newer one, or when all of its ranks are new. */
  autoClose: number | false;
  actions?: Notification.IAction[];
  /** Whether it is about a state that lasts until the notice is ended, and so is shown again after others; else it is about an event. */
  holds?: true;
  /** Called when the user has closed it. */
  closed?(): void;
}

export class GroupNotice {
  constructor(
    private readonly _registry: GroupNotices,
    readonly group: string,
    public message: string,
    readonly kind: Notification.TypeOptions,
    readonly options: INoticeOptions
  ) {}

  /** How far it is, from 0 to 1. */
  progress: number | undefined;

  /** Whether it has ended, or was closed. */
  isOver = false;

  /** Whether it has closed by itself. */
  isTimedOut = false;

  update(message: string, progress?: number): void {
    if (!this.isOver && (message !== this.message || progress !== this.progress)) {
      Object.assign(this, { message, progress });
      this._registry.updated(this);
    }
  }

  /** End the notice: its reason is gone. */
  end(): void {
    if (!this.isOver) {
      this.isOver = true;
      this._registry.ended(this);
    }
  }
}

/** What JupyterLab shows of a group. */
interface IShown {
  readonly notice: GroupNotice;
  /** The notification's id. */
  readonly id: string;
  readonly at: number;
  message: string;
  progress: number | undefined;
}

export class GroupNotices {
  constructor(private readonly _manager: typeof Notification.manager) {
    _manager.changed.connect((_, { type, notification }) => {
      if (type === 'removed') {
        this._onRemoved(notification.id);
      }
    });
  }

  show(group: string, message: string, kind: Notification.TypeOptions, options: INoticeOptions): GroupNotice {
    const notice = new GroupNotice(this, group, message, kind, options);
    const standing = this._of(group).filter(({ options }) => options.holds);
    this._standing.set(group, [...standing, notice]);
    this._draw(group);
    return notice;
  }

  updated({ group }: GroupNotice): void {
    this._draw(group);
  }

  ended(notice: GroupNotice): void {
    this._standing.set(
      notice.group,
      this._of(notice.group).filter(other => other !== notice)
    );
    this._draw(notice.group);
  }

  /** Groups that are gone have no notices, and what happened to ranks before a restart is over with them. */
  keep(groups: readonly Pick<IGroup, 'id' | 'generation'>[]): void {
    const known = new Map(groups.map(({ id, generation }) => [id, generation]));
    for (const [group, generation] of this._known) {
      const notices = known.has(group) ? this._of(group).filter(({ options }) => !options.holds) : this._of(group);
      if (known.get(group) !== generation) {
        notices.forEach(notice => notice.end());
      }
    }
    this._known = known;
  }

  private _of(group: string): readonly GroupNotice[] {
    return this._standing.get(group) ?? [];
  }

  private _draw(group: string): void {
    const standing = this._of(group);
    const wanted: GroupNotice | undefined = standing[standing.length - 1];
    const shown = this._shown.get(group);
    if (!shown) {
      if (wanted) {
        this._emit(wanted);
      }
      return;
    }
    const wait = shown.at + SETTLE_MS - performance.now();
    if (wait > 0) {
      this._drawLater(group, wait);
    } else if (shown.notice === wanted) {
      this._update(shown);
    } else {
      this._shown.delete(group);
      // What has closed by itself stays in JupyterLab's list.
      if (wanted || !shown.notice.isTimedOut) {
        this._manager.dismiss(shown.id);
      }
      if (wanted) {
        this._emit(wanted);
      }
    }
  }

  private _drawLater(group: string, wait: number): void {
    if (!this._waiting.has(group)) {
      this._waiting.add(group);
      setTimeout(() => {
        this._waiting.delete(group);
        this._draw(group);
      }, wait);
    }
  }

  private _emit(notice: GroupNotice): void {
    const { group, message, kind, options, progress } = notice;
    const { autoClose } = options;
    const actions = withWhole(message, options.actions);
    const id = this._manager.notify(message, kind, { autoClose, actions, progress });
    this._shown.set(group, { notice, id, at: performance.now(), message, progress });
    if (autoClose !== false) {
      setTimeout(() => {
        notice.isTimedOut = !notice.isOver;
        notice.end();
      }, autoClose);
    }
  }

  private _update(shown: IShown): void {
    const { id, notice } = shown;
    const { message, progress } = notice;
    if (message !== shown.message || progress !== shown.progress) {
      Object.assign(shown, { message, progress });
      this._manager.update({ id, message, progress });
    }
  }

  private _onRemoved(id: string): void {
    for (const [group, { notice, id: shown }] of this._shown) {
      if (id === shown) {
        this._shown.delete(group);
        notice.options.closed?.();
        notice.end();
        return;
      }
    }
  }

  /** The generations of the groups. */
  private _known = new Map<string, number>();
  /** By group: the notices that hold, the newest last. */
  private readonly _standing = new Map<string, readonly GroupNotice[]>();
  private readonly _shown = new Map<string, IShown>();
  private readonly _waiting = new Set<string>();
}

/** The notices of this page, like JupyterLab's manager. */
export const groupNotices = new GroupNotices(Notification.manager);

/** Show a notification about a group, in place of the group's earlier one. */
export function notifyGroup(
  group: string,
  message: string,
  kind: Notification.TypeOptions,
  options: INoticeOptions
): GroupNotice {
  return groupNotices.show(group, message, kind, options);
}
