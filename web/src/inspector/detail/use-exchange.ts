// One request with all that was recorded of it. It is read again when its state changes, and every second
// while it is in progress.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { API, type Exchange, type ExchangeSummary } from '../../../../src/inspector/api.ts'
import { call } from '../api.ts'

const PENDING_REFRESH_MS = 1_000

export const useExchange = (id: string, summary: ExchangeSummary | undefined, reveal: boolean) =>
  useQuery({
    queryKey: ['exchange', id, reveal, summary?.state, summary?.status],
    queryFn: ({ signal }) =>
      call<Exchange>(API.request(id), { query: { reveal: reveal || undefined }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.state === 'pending' ? PENDING_REFRESH_MS : false),
    gcTime: 30_000,
  })
