// Where there is no link to use.
import { Anchor, Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { optionsQuery } from '../queries.ts'
import { AuthLayout } from './auth-layout.tsx'

/** After loading the page again: what follows # was taken out of the address, and is stored nowhere. */
export function MissingLink() {
  return (
    <AuthLayout title="Open the link again">
      <Text size="sm">
        To keep it secret, this page has taken your link out of the address, and forgets it when it is loaded
        again. Open the link once more from where you got it.
      </Text>
      <Button component={Link} href="/sign-in" variant="default">
        Go to sign-in
      </Button>
    </AuthLayout>
  )
}

export function InvalidLink() {
  const options = useQuery(optionsQuery)
  return (
    <AuthLayout title="This link is no longer good">
      <Text size="sm">
        A link works once and within 24 hours, and whoever made it can revoke it. Perhaps you have used it
        already: then just sign in.
      </Text>
      <Text size="sm">
        Otherwise ask the person who invited you, or the operator of this server, for a new one.
      </Text>
      <Button component={Link} href="/sign-in">
        Go to sign-in
      </Button>
      {options.data?.resetByMail && (
        <Anchor component={Link} href="/forgotten" size="sm" ta="center">
          Forgotten password?
        </Anchor>
      )}
    </AuthLayout>
  )
}
