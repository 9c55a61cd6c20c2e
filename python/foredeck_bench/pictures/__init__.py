"""The pictures of the README: pages of `foredeck ui` over the sessions of the demo."""
