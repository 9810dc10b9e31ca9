"""Programs: how they are started, watched, enclosed and ended. Only this folder starts any."""
