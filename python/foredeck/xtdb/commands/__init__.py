"""The commands that only a store on XTDB has; `foredeck.store.registry` names them."""
