/** JupyterLab cuts the text of a notification: a button shows the rest. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { translation } from '../../services/translation';

/** What JupyterLab shows of a text. */
const MAX_CHARS = 140;

/** The buttons of a notification, with one more where its text is cut. */
export function withWhole(message: string, actions: readonly Notification.IAction[] = []): Notification.IAction[] {
  if (message.length <= MAX_CHARS) {
    return [...actions];
  }
  const trans = translation();
  const callback = (event: MouseEvent): void => {
    event.preventDefault(); // the notification stays
    void showDialog({
      title: trans.__('Ranks'),
      body: message,
      buttons: [Dialog.okButton({ label: trans.__('Close') })]
    });
  };
  return [...actions, { label: trans.__('Read all'), callback }];
}
