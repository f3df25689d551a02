// The requests that match the filter and the search.
import { useDebouncedValue, useThrottledValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo } from 'react'
import { API, type ExchangeList, type ExchangeSummary, LIMITS } from '../../../../src/inspector/api.ts'
import { call } from '../api.ts'
import { useLive } from '../live/use-live.ts'
import { type Filter, matchesFilter } from './filter.ts'

const TYPING_MS = 200
/** A search reads all bodies. */
const SEARCH_AGAIN_MS = 1_000

export interface ShownRequests {
  readonly requests: readonly ExchangeSummary[]
  readonly isSearching: boolean
  readonly error: Error | null
}

export function useShownRequests(filter: Filter): ShownRequests {
  const requests = useLive((state) => state.requests)
  const search = useSearch(filter.search, requests)
  const shown = useMemo(
    () =>
      requests.filter(
        (request) => matchesFilter(request, filter) && (!search.ids || search.ids.has(request.id)),
      ),
    [requests, filter, search.ids],
  )
  return { requests: shown, isSearching: search.isSearching, error: search.error }
}

function useSearch(text: string, requests: readonly ExchangeSummary[]) {
  const [typed] = useDebouncedValue(text.trim(), TYPING_MS)
  const isActive = text.trim() !== '' && typed !== ''
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['search', typed],
    queryFn: async ({ signal }) => {
      const query = { search: typed, limit: LIMITS.pageSize }
      const { requests } = await call<ExchangeList>(API.requests, { query, signal })
      return new Set(requests.map(({ id }) => id))
    },
    enabled: isActive,
    placeholderData: keepPreviousData,
  })
  const changed = useThrottledValue(requests, SEARCH_AGAIN_MS)
  useEffect(() => {
    if (isActive && changed) void refetch({ cancelRefetch: false })
  }, [changed, isActive, refetch])
  return {
    ids: isActive ? data : undefined,
    error: isActive ? error : null,
    isSearching: isActive && isFetching && !data,
  }
}
