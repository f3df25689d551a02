// Replays a request, selects the new one, and says how it went.
import { useMutation } from '@tanstack/react-query'
import { useMemo } from 'react'
import {
  API,
  type Exchange,
  type ExchangeSummary,
  type Replayed,
  type ReplayRequest,
} from '../../../../src/inspector/api.ts'
import { clearToast, showToast } from '../../components/toast.tsx'
import { call } from '../api.ts'
import { live } from '../live/live-requests.ts'
import { select } from '../live/selection.ts'

export type Replay = ReturnType<typeof useReplay>

/** For the result; a stream may take longer. */
const RESULT_WAIT_S = 3
const PATH_CHARS = 80

/** As it was recorded. The result is the same object until something of it changes. */
export function useReplay() {
  const { mutate, isPending, variables, error } = useMutation({
    mutationFn: ({ id }: ExchangeSummary) => replay(id, {}),
    onError: (error) => showToast(`Replay failed. ${error.message}`, 'failure'),
  })
  return useMemo(() => ({ mutate, isPending, variables, error }), [mutate, isPending, variables, error])
}

export async function replay(id: string, edit: ReplayRequest): Promise<void> {
  // That of an earlier replay would be taken for that of this one.
  clearToast()
  const { request } = await call<Replayed>(API.replay(id), { method: 'POST', body: edit })
  live.add(request)
  select(request.id)
  void announce(request)
}

async function announce({ id, method, path }: ExchangeSummary): Promise<void> {
  const sent = `${method} ${path.length > PATH_CHARS ? `${path.slice(0, PATH_CHARS)}…` : path}`
  const query = { wait: RESULT_WAIT_S }
  const result = await call<Exchange>(API.request(id), { query }).catch(() => undefined)
  if (result?.state === 'aborted')
    showToast(`Replayed ${sent}: the connection ended before the response was complete.`, 'failure')
  else showToast(`Replayed ${sent}${result?.status === undefined ? '' : `: ${result.status}`}`)
}
