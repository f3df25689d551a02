// One request with all that was recorded of it. It is read again when its state changes, and every second
// while it is in progress. What was read of it stays after it was evicted.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { API, type Exchange, type ExchangeSummary } from '../../../../src/inspector/api.ts'
import { call } from '../api.ts'

const PENDING_REFRESH_MS = 1_000

export function useExchange(id: string, summary: ExchangeSummary | undefined, reveal: boolean) {
  const [last, setLast] = useState(summary)
  if (summary && summary !== last) setLast(summary)
  const { state, status } = summary ?? last ?? {}
  return useQuery({
    queryKey: ['exchange', id, reveal, state, status],
    queryFn: ({ signal }) =>
      call<Exchange>(API.request(id), { query: { reveal: reveal || undefined }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.state === 'pending' ? PENDING_REFRESH_MS : false),
    gcTime: 30_000,
  })
}
