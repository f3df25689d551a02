// Loads the next page of a list.
import { Button, Group } from '@mantine/core'
import { ErrorAlert } from './query-states.tsx'

interface PagedQuery {
  hasNextPage: boolean
  isFetchingNextPage: boolean
  isFetchNextPageError: boolean
  error: Error | null
  fetchNextPage: () => unknown
}

export function LoadMoreButton({ query }: { query: PagedQuery }) {
  if (!query.hasNextPage) return null
  return (
    <>
      {query.isFetchNextPageError && <ErrorAlert error={query.error} />}
      <Group justify="center">
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
          Load more
        </Button>
      </Group>
    </>
  )
}
