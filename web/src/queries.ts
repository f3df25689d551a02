// What the page has asked the server and remembers, and how it asks again.
import {
  infiniteQueryOptions,
  MutationCache,
  QueryCache,
  QueryClient,
  queryOptions,
} from '@tanstack/react-query'
import { navigate } from 'wouter/use-browser-location'
import { call, type Input, type Output } from './api.ts'
import { ApiError, isTransient } from './api-error.ts'
import { currentPath, prefix, saveReturnPath } from './paths.ts'

const RETRIES = 2
const RETRY_INTERVAL_MS = 5_000
const USAGE_REFRESH_MS = 10_000

const isUnauthorized = (error: unknown) => error instanceof ApiError && error.code === 'unauthorized'

const isNotFound = (error: unknown) => error instanceof ApiError && error.code === 'not_found'

/** Operations anybody may call answer 401 for a wrong password or code: that is for their form to say. */
export const allowSignedOut = { meta: { allowSignedOut: true } } as const

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      if (isUnauthorized(error) && !query.meta?.allowSignedOut) redirectToSignIn()
      // A workspace that is not there was removed, or one was removed from it: the session tells.
      if (isNotFound(error) && query.queryKey[0] === 'workspace')
        queryClient.invalidateQueries({ queryKey: ['session'] })
    },
  }),
  mutationCache: new MutationCache({
    onError: (error, _variables, _result, mutation) => {
      const mayBeOver = error instanceof ApiError && [401, 403, 404].includes(error.status)
      // A wrong password may be refused like a session that is over, a role may have changed, or one was removed: the
      // session tells.
      if (mayBeOver && !mutation.meta?.allowSignedOut)
        queryClient.invalidateQueries({ queryKey: ['session'] })
    },
  }),
  defaultOptions: {
    queries: {
      networkMode: 'always',
      staleTime: 10_000,
      retry: (failures, error) => failures < RETRIES && isTransient(error) && (error.retryAfterS ?? 0) <= 10,
      retryDelay: (failures, error) =>
        error instanceof ApiError && error.retryAfterS ? error.retryAfterS * 1_000 : 500 * 2 ** failures,
      refetchInterval: (query) => (isTransient(query.state.error) ? RETRY_INTERVAL_MS : false),
    },
    // Passwords go in and secrets come out of mutations: nothing of them is kept.
    mutations: { networkMode: 'always', gcTime: 0 },
  },
})

/** What the sign-in page is told by the one before, in the history of this tab. */
export interface SignInState {
  wasSignedIn?: boolean
}

function redirectToSignIn(): void {
  if (currentPath().startsWith('/sign-in')) return
  // Whoever saw something before is told why it is gone; whoever has just come is not.
  const state: SignInState = { wasSignedIn: queryClient.getQueryData(sessionQuery.queryKey) !== undefined }
  saveReturnPath(currentPath())
  queryClient.clear()
  navigate(`${prefix}/sign-in`, { replace: true, state })
}

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => call('session.read'),
})

export const optionsQuery = queryOptions({
  queryKey: ['sign-in', 'options'],
  queryFn: () => call('sign-in.options'),
  ...allowSignedOut,
})

export const workspaceQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'facts'],
    queryFn: () => call('workspace.read', { workspace }),
  })

export type KeyFilter = NonNullable<Input<'keys.list'>['state']> | 'all'

export type Key = Output<'keys.list'>['keys'][number]

export const keysQuery = (workspace: string, state: KeyFilter) =>
  infiniteQueryOptions({
    queryKey: ['workspace', workspace, 'keys', state],
    queryFn: ({ pageParam }) =>
      call('keys.list', {
        workspace,
        ...(state !== 'all' && { state }),
        ...(pageParam && { cursor: pageParam }),
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })

export type Series = Output<'usage.read'>['series']

export const usageQuery = (workspace: string, days: number) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'usage', days],
    queryFn: () => call('usage.read', { workspace, days }),
    // Edges report every few seconds, and whoever looks on sees it.
    refetchInterval: ({ state }) => (isTransient(state.error) ? RETRY_INTERVAL_MS : USAGE_REFRESH_MS),
  })

export const peopleQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'people'],
    queryFn: () => call('members.list', { workspace }),
  })

export const auditQuery = (workspace: string) =>
  infiniteQueryOptions({
    queryKey: ['workspace', workspace, 'audit'],
    queryFn: ({ pageParam }) => call('audit.list', { workspace, ...(pageParam && { cursor: pageParam }) }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })

export const sessionsQuery = queryOptions({
  queryKey: ['account', 'sessions'],
  queryFn: () => call('account.sessions'),
})

/** Whatever changes a workspace is in its audit log too. */
export const invalidateWorkspace = (workspace: string, ...parts: ('keys' | 'people')[]): Promise<unknown> =>
  Promise.all(
    [...parts, 'audit'].map((part) =>
      queryClient.invalidateQueries({ queryKey: ['workspace', workspace, part] }),
    ),
  )
