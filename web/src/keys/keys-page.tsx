// The API keys of a workspace: seen by all, made and revoked by those who may.
import { Button, Group, SegmentedControl, Text } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { useSearchParams } from 'wouter'
import { LoadMoreButton } from '../components/load-more-button.tsx'
import { Page } from '../components/page.tsx'
import { EmptyState, QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { KeyIcon, PlusIcon } from '../icons.tsx'
import { type KeyFilter, keysQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { CreateKeyDialog } from './create-key-dialog.tsx'
import { KeyList } from './key-list.tsx'

const filterLabels: Record<KeyFilter, string> = { active: 'Active', revoked: 'Revoked', all: 'All' }
const filters = Object.entries(filterLabels).map(([value, label]) => ({ value: value as KeyFilter, label }))

const DEFAULT: KeyFilter = 'active'

export function KeysPage() {
  const { slug, name, canManage } = useWorkspace()
  const [search, setSearch] = useSearchParams()
  const asked = search.get('state')
  const state = filters.find(({ value }) => value === asked)?.value ?? DEFAULT
  const keys = useInfiniteQuery(keysQuery(slug, state))
  const createRef = useRef<HTMLButtonElement>(null)
  const isCreating = canManage && search.has('create')

  const setAddress = (creating: boolean, state: KeyFilter) =>
    setSearch({ ...(state !== DEFAULT && { state }), ...(creating && { create: '' }) }, { replace: true })
  const setCreating = (creating: boolean) => setAddress(creating, state)
  const createButton = canManage && (
    <Button ref={createRef} leftSection={<PlusIcon />} onClick={() => setCreating(true)}>
      Create key
    </Button>
  )

  return (
    <Page
      title="API keys"
      of={name}
      lead="Programs and tunnel clients sign in with these. A key is shown once, when it is made."
      actions={createButton}
    >
      <Group>
        <SegmentedControl
          aria-label="Which keys"
          data={filters}
          value={state}
          onChange={(value) => setAddress(false, value as KeyFilter)}
        />
      </Group>
      <QueryResult query={keys} skeleton={<SkeletonRows count={5} height={52} />}>
        {({ pages }) => {
          const list = pages.flatMap((page) => page.keys)
          if (list.length === 0) return <NoKeys state={state} canManage={canManage} />
          return (
            <>
              <KeyList keys={list} />
              <LoadMoreButton query={keys} />
            </>
          )
        }}
      </QueryResult>
      {canManage && <KeysCreatedByKeysNote />}
      {canManage && (
        <CreateKeyDialog
          opened={isCreating}
          onClose={() => setCreating(false)}
          onDone={() => createRef.current?.focus()}
        />
      )}
    </Page>
  )
}

/** Whoever revokes a key that leaked should look for what was made with it. */
function KeysCreatedByKeysNote() {
  const { slug } = useWorkspace()
  const { data } = useQuery(workspaceQuery(slug))
  if (!data?.keysCanManageKeys) return null
  return (
    <Text size="sm" c="dimmed" maw={640}>
      API keys can make and revoke keys too. Revoking a key leaves the keys that it made active: look who made
      which, and revoke those as well if the key has leaked.
    </Text>
  )
}

function NoKeys({ state, canManage }: { state: KeyFilter; canManage: boolean }) {
  if (state === 'revoked') return <EmptyState icon={<KeyIcon size={36} />} title="No key was revoked" />
  return (
    <EmptyState icon={<KeyIcon size={36} />} title="No keys yet">
      {canManage
        ? 'Create one for each program or machine, so that you can revoke them one by one.'
        : 'Ask an admin or owner of this workspace to create one.'}
    </EmptyState>
  )
}
