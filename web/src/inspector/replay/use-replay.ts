// Replays a request and selects the new one.
import { useMutation } from '@tanstack/react-query'
import {
  API,
  type ExchangeSummary,
  type Replayed,
  type ReplayRequest,
} from '../../../../src/inspector/api.ts'
import { showToast } from '../../components/toast.tsx'
import { call } from '../api.ts'
import { live } from '../live/live-requests.ts'
import { select } from '../live/selection.ts'

export type Replay = ReturnType<typeof useReplay>

/** As it was recorded. */
export const useReplay = () => useMutation({ mutationFn: ({ id }: ExchangeSummary) => replay(id, {}) })

export async function replay(id: string, edit: ReplayRequest): Promise<void> {
  const { request } = await call<Replayed>(API.replay(id), { method: 'POST', body: edit })
  live.add(request)
  select(request.id)
  showToast(`Replayed ${request.method} ${request.path.slice(0, 80)}`)
}
