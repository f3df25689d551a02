// API keys of a workspace. All members see them. By role, policy and variant, they create or request keys.

import { Button, Checkbox, Group, SegmentedControl, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { useSearchParams } from 'wouter'
import { TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import { ConnectMachineButton } from '../components/client-setup.tsx'
import { LoadMoreButton } from '../components/lists/load-more-button.tsx'
import { EmptyState, NoMatchYet, QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { SearchInput } from '../components/lists/search-input.tsx'
import { Page } from '../components/page.tsx'
import { KeyIcon, PlusIcon, SearchIcon } from '../icons.tsx'
import { WhomToAsk } from '../members/whom-to-ask.tsx'
import { type KeyFilter, keysQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { CreateKeyDialog } from './create-key-dialog.tsx'
import { ExpiringKeys } from './expiring-keys.tsx'
import { KeyList } from './key-list.tsx'
import { KeyRequests } from './key-requests.tsx'
import { useKeyRights } from './key-rights.ts'
import { RequestKeyDialog } from './request-key-dialog.tsx'

const filterLabels: Record<KeyFilter, string> = {
  active: 'Active',
  expired: 'Expired',
  revoked: 'Revoked',
  all: 'All',
}
const filters = Object.entries(filterLabels).map(([value, label]) => ({ value: value as KeyFilter, label }))

const DEFAULT_FILTER: KeyFilter = 'active'

const SEARCH_DELAY_MS = 250

/** A key that is pasted here must not get into a URL, so only its last four characters are sent. */
const searchTerm = (typed: string) =>
  typed.trim().startsWith('adit_') ? typed.trim().slice(-4) : typed.trim().slice(0, TEXT_CHARS_MAX)

export function KeysPage() {
  const { slug, name, canManage } = useWorkspace()
  const [parameters, setParameters] = useSearchParams()
  const requested = parameters.get('state')
  const state = filters.find(({ value }) => value === requested)?.value ?? DEFAULT_FILTER
  const [typed, setTyped] = useState('')
  const [search] = useDebouncedValue(searchTerm(typed), SEARCH_DELAY_MS)
  const [onlyMine, setOnlyMine] = useState(false)
  const keys = useInfiniteQuery(keysQuery(slug, state, search, onlyMine))
  const createRef = useRef<HTMLButtonElement>(null)
  const { canCreate, canRequest } = useKeyRights()
  const [isRequesting, setRequesting] = useState(false)
  const isCreating = canCreate && parameters.has('create')

  const updateUrl = (creating: boolean, state: KeyFilter) =>
    setParameters(
      { ...(state !== DEFAULT_FILTER && { state }), ...(creating && { create: '' }) },
      { replace: true },
    )
  const setCreating = (creating: boolean) => updateUrl(creating, state)
  const createButton = canCreate && (
    <Button ref={createRef} leftSection={<PlusIcon />} onClick={() => setCreating(true)}>
      Create key
    </Button>
  )
  const requestButton = canRequest && (
    <Button leftSection={<PlusIcon />} onClick={() => setRequesting(true)}>
      Request key
    </Button>
  )

  return (
    <Page
      title="API keys"
      context={name}
      description="Keys let tunnel clients and scripts use this workspace."
      actions={
        <>
          <ConnectMachineButton />
          {createButton || requestButton}
        </>
      }
    >
      <CreatorsNote />
      <KeyRequests />
      <ExpiringKeys isLinked={false} />
      <Group>
        <SegmentedControl
          aria-label="Filter by status"
          data={filters}
          value={state}
          onChange={(value) => updateUrl(false, value as KeyFilter)}
        />
        <SearchInput
          label="Search API keys"
          placeholder="Label, last four characters or ID"
          value={typed}
          onChange={setTyped}
        />
        <Checkbox
          label="Only my keys"
          checked={onlyMine}
          onChange={(event) => setOnlyMine(event.currentTarget.checked)}
        />
      </Group>
      <QueryResult query={keys} skeleton={<SkeletonRows count={5} height={52} />}>
        {({ pages }) => {
          const list = pages.flatMap((page) => page.keys)
          if (list.length === 0 && !keys.hasNextPage)
            return search ? (
              <NoMatch search={search} />
            ) : (
              <NoKeys state={state} canCreate={canCreate} onlyMine={onlyMine} />
            )
          return (
            <>
              {list.length > 0 ? <KeyList keys={list} canCreate={canCreate} /> : <NoMatchYet items="keys" />}
              <LoadMoreButton query={keys} />
            </>
          )
        }}
      </QueryResult>
      {canManage && <KeysCreatedByKeysNote />}
      <RequestKeyDialog opened={isRequesting} onClose={() => setRequesting(false)} />
      {canCreate && (
        <CreateKeyDialog
          opened={isCreating}
          onClose={() => setCreating(false)}
          onDone={() => createRef.current?.focus()}
        />
      )}
    </Page>
  )
}

/** Says who creates keys, to members who cannot. */
function CreatorsNote() {
  const { creators, canCreate, canRequest } = useKeyRights()
  if (canCreate || creators === undefined) return null
  return (
    <Text size="sm" c="dimmed" maw={640} style={{ overflowWrap: 'anywhere' }}>
      {creators.includes('admin') ? 'Admins and owners' : 'Owners'} of this workspace create API keys.
      {canRequest ? ' Request one here, or run adit login.' : <WhomToAsk roles={creators} />}
    </Text>
  )
}

/** A leaked key may have been used to create others, which stay active when it is revoked. */
function KeysCreatedByKeysNote() {
  const { slug } = useWorkspace()
  const { data } = useQuery(workspaceQuery(slug))
  if (!data?.keysCanManageKeys || !data.policy.keysManageKeys) return null
  return (
    <Text size="sm" c="dimmed" maw={640}>
      API keys can create other keys, which stay active when the first one is revoked. If a key leaks, revoke
      the keys it created too.
    </Text>
  )
}

function NoMatch({ search }: { search: string }) {
  return (
    <EmptyState icon={<SearchIcon size={36} />} title="No matching keys">
      No key with this status has “{search}” in its label, last four characters or ID.
    </EmptyState>
  )
}

interface NoKeysProps {
  state: KeyFilter
  canCreate: boolean
  onlyMine: boolean
}

function NoKeys({ state, canCreate, onlyMine }: NoKeysProps) {
  if (onlyMine) return <EmptyState icon={<KeyIcon size={36} />} title="You have no such keys" />
  if (state === 'revoked' || state === 'expired')
    return <EmptyState icon={<KeyIcon size={36} />} title={`No ${state} keys`} />
  return (
    <EmptyState icon={<KeyIcon size={36} />} title={state === 'active' ? 'No active keys' : 'No keys yet'}>
      {canCreate
        ? 'Create a key for each program or machine, so you can revoke them one by one.'
        : 'They appear here when they are created.'}
    </EmptyState>
  )
}
