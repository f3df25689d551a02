// Query client, and the queries of the dashboard API: cache keys, polling and retries.
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
const LIVE_REFRESH_MS = 5_000
const DEVICE_REFRESH_MS = 2_000
const NEW_DELIVERY_REFRESH_MS = 500

/** Polled while the page is visible. Data of an earlier visit counts as stale at once. */
const live = { refetchInterval: LIVE_REFRESH_MS, staleTime: 0 } as const

const isUnauthorized = (error: unknown) => error instanceof ApiError && error.code === 'unauthorized'

const isDenied = (error: unknown) => error instanceof ApiError && [403, 404].includes(error.status)

/** For operations that need no session: a 401 means a wrong password or code, which their form shows. */
export const allowSignedOut = { meta: { allowSignedOut: true } } as const

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      if (isUnauthorized(error) && !query.meta?.allowSignedOut) redirectToSignIn()
      // The user was probably removed from the workspace, or it requires two-factor authentication now:
      // reload the list of memberships.
      if (isDenied(error) && query.queryKey[0] === 'workspace')
        queryClient.invalidateQueries({ queryKey: ['session'] })
    },
  }),
  mutationCache: new MutationCache({
    onError: (error, _variables, _result, mutation) => {
      // The session may have expired, or the role changed. A wrong password has the same status, so the
      // session query decides.
      const mayHaveChanged = error instanceof ApiError && [401, 403, 404].includes(error.status)
      if (mayHaveChanged && !mutation.meta?.allowSignedOut)
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
    // Variables and results of mutations contain passwords and secrets, so they are not cached.
    mutations: { networkMode: 'always', gcTime: 0 },
  },
})

/** History state of the sign-in page. */
export interface SignInState {
  wasSignedIn?: boolean
}

function redirectToSignIn(): void {
  if (currentPath().startsWith('/sign-in')) return
  // The message about an ended session is not for users who have just opened the dashboard.
  const state: SignInState = { wasSignedIn: queryClient.getQueryData(sessionQuery.queryKey) !== undefined }
  saveReturnPath(currentPath())
  queryClient.clear()
  navigate(`${prefix}/sign-in`, { replace: true, state })
}

/**
 * Null if signed out. Asks first whether there is a session: browsers log a response with status 401 as an
 * error.
 */
const findSession = async () => ((await call('sign-in.options')).isSignedIn ? call('session.read') : null)

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ queryKey }) => {
    const isFirst = queryClient.getQueryData(queryKey) === undefined
    const session = isFirst ? await findSession() : await call('session.read')
    if (session === null) throw ApiError.signedOut()
    return session
  },
})

/** The session, or null if signed out; for pages that work either way. */
export const optionalSessionQuery = queryOptions({
  queryKey: ['optional-session'],
  queryFn: async () => {
    try {
      return await findSession()
    } catch (error) {
      if (isUnauthorized(error)) return null
      throw error
    }
  },
  gcTime: 0,
  staleTime: 0,
  ...allowSignedOut,
})

export const signInOptionsQuery = queryOptions({
  queryKey: ['sign-in', 'options'],
  queryFn: () => call('sign-in.options'),
  ...allowSignedOut,
})

export type Agent = Output<'agents.read'>

/** An agent that asks to sign in, by the query string of its request. */
export const agentQuery = (request: string) =>
  queryOptions({
    queryKey: ['agent', request],
    queryFn: () => call('agents.read', { request }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })

export type Device = Output<'devices.read'>

/** A terminal that asks for an API key. Once it is approved, polled until the terminal has the key. */
export const deviceQuery = (code: string) =>
  queryOptions({
    queryKey: ['device', code],
    queryFn: () => call('devices.read', { code }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: ({ state }) =>
      isTransient(state.error) ? RETRY_INTERVAL_MS : state.data?.state === 'approved' && DEVICE_REFRESH_MS,
  })

export const workspaceQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'details'],
    queryFn: () => call('workspace.read', { workspace }),
  })

export type KeyFilter = NonNullable<Input<'keys.list'>['state']> | 'all'

/** A key, with the keys that it has replaced. */
export type ListedKey = Output<'keys.list'>['keys'][number]

export type Key = ListedKey['predecessors'][number]

export const keysQuery = (workspace: string, state: KeyFilter, search = '', onlyMine = false) =>
  infiniteQueryOptions({
    queryKey: ['workspace', workspace, 'keys', state, search, onlyMine],
    queryFn: ({ pageParam }) =>
      call('keys.list', {
        workspace,
        ...(state !== 'all' && { state }),
        ...(search && { search }),
        ...(onlyMine && { owner: 'me' }),
        ...(pageParam && { cursor: pageParam }),
      }),
    // The previous list stays visible while a search is loading.
    placeholderData: (previous, query) => (query?.queryKey[3] === state ? previous : undefined),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })

export type KeyRequest = Output<'key-requests.list'>['requests'][number]

/** The cache key is below that of the keys, so that a change of keys reloads it. Polled: others decide. */
export const keyRequestsQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'keys', 'requests'],
    queryFn: () => call('key-requests.list', { workspace }),
    ...live,
  })

/** The cache key is below that of the keys, so that a change of keys reloads it. */
export const noticesQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'keys', 'notices'],
    queryFn: () => call('notices.list', { workspace }),
  })

/** Edges report every few seconds, so an open page shows current usage. */
const refreshUsage = ({ state }: { state: { error: Error | null } }) =>
  isTransient(state.error) ? RETRY_INTERVAL_MS : USAGE_REFRESH_MS

export const quotasQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'keys', 'quotas'],
    queryFn: () => call('quotas.read', { workspace }),
    refetchInterval: refreshUsage,
  })

export type Series = Output<'usage.read'>['series']

export const usageQuery = (workspace: string, days: number) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'usage', days],
    queryFn: () => call('usage.read', { workspace, days }),
    refetchInterval: refreshUsage,
  })

export type Tunnel = Output<'tunnels.list'>['tunnels'][number]

export const tunnelsQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'tunnels'],
    queryFn: () => call('tunnels.list', { workspace }),
    ...live,
  })

export type Edge = Output<'edges.list'>['edges'][number]

export const edgesQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'edges'],
    queryFn: () => call('edges.list', { workspace }),
    ...live,
  })

export type TunnelName = Output<'names.list'>['names'][number]

export const namesQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'names'],
    queryFn: () => call('names.list', { workspace }),
    ...live,
  })

export type WebhookEndpoint = Output<'webhooks.list'>['endpoints'][number]

export const webhooksQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'webhooks', 'list'],
    queryFn: () => call('webhooks.list', { workspace }),
    ...live,
  })

export type WebhookDelivery = Output<'webhooks.deliveries'>['deliveries'][number]

export const deliveriesQuery = (workspace: string, id: string) =>
  infiniteQueryOptions({
    queryKey: ['workspace', workspace, 'webhooks', id, 'deliveries'],
    queryFn: ({ pageParam }) =>
      call('webhooks.deliveries', { workspace, id, ...(pageParam && { before: pageParam }) }),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    ...live,
    // The first attempt of a new delivery takes less than a second.
    refetchInterval: ({ state }) =>
      state.data?.pages[0]?.deliveries.some(({ state, attempts }) => state === 'pending' && attempts === 0)
        ? NEW_DELIVERY_REFRESH_MS
        : LIVE_REFRESH_MS,
  })

/** The cache key has the number of attempts, so that another attempt reloads it. */
export const deliveryQuery = (workspace: string, id: string, position: number, attempts: number) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'webhooks', id, 'delivery', position, attempts],
    queryFn: () => call('webhooks.delivery', { workspace, id, position: String(position) }),
  })

export const membersQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'members'],
    queryFn: () => call('members.list', { workspace }),
  })

export type Member = Output<'members.list'>['members'][number]

export const auditQuery = (workspace: string, filter: Omit<Input<'audit.list'>, 'workspace'>) =>
  infiniteQueryOptions({
    queryKey: ['workspace', workspace, 'audit', filter],
    queryFn: ({ pageParam }) =>
      call('audit.list', { workspace, ...filter, ...(pageParam && { cursor: pageParam }) }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })

export const sessionsQuery = queryOptions({
  queryKey: ['account', 'sessions'],
  queryFn: () => call('account.sessions'),
})

/** Call this after a change in a workspace; every change is in the audit log, too. */
export const invalidateWorkspace = (
  workspace: string,
  ...resources: ('details' | 'keys' | 'members' | 'names' | 'tunnels' | 'webhooks')[]
): Promise<unknown> =>
  Promise.all(
    [...resources, 'audit'].map((resource) =>
      queryClient.invalidateQueries({ queryKey: ['workspace', workspace, resource] }),
    ),
  )
