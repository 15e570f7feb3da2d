/** What JupyterLab asks a kernel about the name at a cursor, answered by a rank. */
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { IRankPlace } from '../../model/targets/cellplace';
import type { IDistService } from '../../tokens';

type InspectContent = KernelMessage.IInspectRequestMsg['content'];

/** A connection of which only inspection is used: JupyterLab's tooltips take one. */
export function inspectingKernel(
  service: IDistService,
  place: () => IRankPlace | null,
  onBusy?: (busy: boolean) => void
): Kernel.IKernelConnection {
  return {
    requestInspect: (content: InspectContent) => inspect(service, place(), content, onBusy)
  } as Kernel.IKernelConnection;
}

/** A rank's answer in the form of a kernel's, of which JupyterLab reads the content. */
export async function inspect(
  service: IDistService,
  place: IRankPlace | null,
  { code, cursor_pos, detail_level: detail }: InspectContent,
  onBusy?: (busy: boolean) => void
): Promise<KernelMessage.IInspectReplyMsg> {
  let content: object = { status: 'ok', found: false, data: {}, metadata: {} };
  if (place) {
    try {
      const { found, busy, data } = await service.inspect(place.group, place.rank, { code, cursor_pos, detail });
      onBusy?.(busy);
      content = { status: 'ok', found: found || busy, data, metadata: {} };
    } catch (reason) {
      console.warn('jupyter_dist: no documentation from the rank', reason);
    }
  }
  return { content } as KernelMessage.IInspectReplyMsg;
}
